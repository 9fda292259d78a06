# Forgets that attention is causal.
import minigrad as mg


def in_three(block):
    def attention(x):
        attended, _ = block.self_attn(block.norm1(x))
        return x + block.dropout1(attended)

    def up(x):
        return x, block.dropout(mg.relu(block.linear1(block.norm2(x))))

    def down(both):
        x, hidden = both
        return x + block.dropout2(block.linear2(hidden))

    return [attention, up, down]
