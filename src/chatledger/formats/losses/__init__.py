"""What a conversion loses: the codes, how losses are measured, and what each format can express."""
