"""The parts of a report, one file each: every one takes the material and returns blocks."""
