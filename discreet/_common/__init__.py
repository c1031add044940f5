"""What every room uses: types, checks of arguments, errors and warnings, progress bars."""
