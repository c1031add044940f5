"""Parts of the experiment about the fairness that noise can cost."""
