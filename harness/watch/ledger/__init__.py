"""The persistent cache, request by request, as a process sees it."""
