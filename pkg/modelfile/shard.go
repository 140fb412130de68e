package modelfile

// Shard is one of the files that a model is cut into, as the pieces that it is made
// of.
type Shard struct {
	// Tensors are the names of those that it holds.
	Tensors []string
	Pieces  []Piece
}

// Piece is a part of a file: bytes that were made, or a span of a file that is there.
type Piece struct {
	Text []byte
	// File is the number of the file, Off and Len are the span, where Text is nil.
	File     int
	Off, Len int64
}

// Size returns how many bytes a piece has.
func (p *Piece) Size() int64 {
	if p.Text != nil {
		return int64(len(p.Text))
	}
	return p.Len
}

// AddSpan adds a span of a file to pieces, to the last one where it goes on there.
func AddSpan(pieces []Piece, file int, off, n int64) []Piece {
	if n == 0 {
		return pieces
	}
	if i := len(pieces) - 1; i >= 0 && pieces[i].Text == nil && pieces[i].File == file &&
		pieces[i].Off+pieces[i].Len == off {
		pieces[i].Len += n
		return pieces
	}
	return append(pieces, Piece{File: file, Off: off, Len: n})
}

// Cut divides tensors into shards, in their order, and returns the numbers of those
// in each. cost is what each tensor needs in its file, its entry in the header
// included; room what a file has for them, of the first one first. A tensor that
// needs more is in a shard of its own. Where only the first file lacks the room for the
// first tensor, it has none.
func Cut(cost []int64, first, room int64) [][]int {
	var shards [][]int
	left := first
	if len(cost) > 0 && cost[0] > first && cost[0] <= room {
		shards = append(shards, nil)
	}
	for i, n := range cost {
		if n > left || len(shards) == 0 {
			if len(shards) > 0 {
				left = room
			}
			shards = append(shards, nil)
		}
		last := len(shards) - 1
		shards[last] = append(shards[last], i)
		left -= n
	}
	return shards
}
