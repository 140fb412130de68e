package gguf

import "github.com/carton-oci/carton-oci/pkg/modelfile"

// PartsAt makes parts with so many tensors each, wherever they would be cut.
func PartsAt(h *Header, counts ...int) []modelfile.Shard {
	all, err := placesOf([]*Header{h})
	if err != nil {
		panic(err)
	}
	next := 0
	var cuts [][]int
	for _, n := range counts {
		var cut []int
		for range n {
			cut = append(cut, next)
			next++
		}
		cuts = append(cuts, cut)
	}
	return h.parts(all, cuts)
}
