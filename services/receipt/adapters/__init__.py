"""What receipt uses of the outside world, one file per technology."""
