"""The answer first: builds grouped by function and cause, and put into words."""
