"""What a checkpoint keeps: policies, slow memory, discarded outputs, advice."""
