"""What is on which side of the split, who waits, what stands idle. Behind `gpuwl inventory`."""
