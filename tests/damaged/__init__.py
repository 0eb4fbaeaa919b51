"""Every kind of file that is read back, and every way in which one can be damaged."""
