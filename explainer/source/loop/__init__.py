"""The training loop: backwards and steps in their order, its rounds and events, what one round hands to the next."""
