"""Every file that is read back, damaged in every way: nothing is raised, made up, or held whole."""
