package main

import (
	"math"
	"math/rand/v2"
)

const (
	epochs       = 400
	learningRate = 0.02
)

// fit trains a network on flowers: stochastic gradient descent on the squared
// distance between the scores and the species as a unit vector.
func fit(flowers []flower) *network {
	n := &network{}
	n.normalise(flowers)
	random := rand.NewPCG(1936, 150)
	n.initialise(random)
	order := make([]int, len(flowers))
	for i := range order {
		order[i] = i
	}
	for range epochs {
		shuffle(order, random)
		for _, i := range order {
			n.step(flowers[i])
		}
	}
	n.float32s()
	return n
}

// normalise sets mean and standard deviation of every measurement.
func (n *network) normalise(flowers []flower) {
	count := float64(len(flowers))
	for j := range n.mean {
		var sum, squares float64
		for _, f := range flowers {
			sum += f.x[j]
		}
		n.mean[j] = sum / count
		for _, f := range flowers {
			d := f.x[j] - n.mean[j]
			squares += float64(d * d)
		}
		n.std[j] = math.Sqrt(squares / count)
	}
}

// initialise draws the weights from [-0.5, 0.5). PCG's sequence is specified,
// so it is the same with every version of Go.
func (n *network) initialise(random *rand.PCG) {
	draw := func() float64 { return float64(float64(random.Uint64()>>11)/(1<<53)) - 0.5 }
	for i := range n.hiddenWeight {
		for j := range n.hiddenWeight[i] {
			n.hiddenWeight[i][j] = draw()
		}
	}
	for k := range n.outputWeight {
		for i := range n.outputWeight[k] {
			n.outputWeight[k][i] = draw()
		}
	}
}

// shuffle is Fisher's and Yates's.
func shuffle(order []int, random *rand.PCG) {
	for i := len(order) - 1; i > 0; i-- {
		j := int(random.Uint64() % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
}

// step moves every weight against its gradient for one flower.
func (n *network) step(f flower) {
	a := n.run(f.x)
	var gradient [classes]float64 // by score
	for k := range gradient {
		gradient[k] = a.scores[k]
		if k == f.species {
			gradient[k]--
		}
	}
	for i := range a.h {
		var back float64 // by the sum before softsign
		for k := range gradient {
			back += float64(gradient[k] * n.outputWeight[k][i])
		}
		back *= a.slope[i]
		for j := range a.z {
			n.hiddenWeight[i][j] -= float64(learningRate * float64(back*a.z[j]))
		}
		n.hiddenBias[i] -= float64(learningRate * back)
	}
	for k := range gradient {
		for i := range a.h {
			n.outputWeight[k][i] -= float64(learningRate * float64(gradient[k]*a.h[i]))
		}
		n.outputBias[k] -= float64(learningRate * gradient[k])
	}
}
