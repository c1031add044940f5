"""Pictures of certificates: bounds and bands of private models against rows and epsilon."""
