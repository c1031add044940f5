"""How far fairness and accuracy can be from those of the noise-free twin: margins, forms of the bound, certificates."""
