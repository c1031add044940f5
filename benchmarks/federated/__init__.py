"""Parts of the experiment that compares federated ADMM with federated averaging."""
