"""What trains is reached by the graph again: cuts taken out, hard decisions given a gradient, leaves made last."""
