"""Functions of other people's libraries, as their users have them."""
