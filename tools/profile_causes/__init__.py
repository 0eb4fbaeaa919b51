"""The programs each build what they say, for the reason that they say."""
