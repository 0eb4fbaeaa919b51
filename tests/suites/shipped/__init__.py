"""What the tests of shipping ship."""
