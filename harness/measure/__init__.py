"""From a plan to records: jobs, processes that measure, and what they report."""
