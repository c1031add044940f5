"""The parts of a report: functions that take the material and return a section."""
