"""DP-Newton: few gradient steps, preconditioned by a second-moment matrix that is released with noise."""
