"""A suite with a module that cannot be imported and a workload that is declared wrongly."""
