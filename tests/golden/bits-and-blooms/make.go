// Writes bits-and-blooms.json: see README.md.
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/bits-and-blooms/bloom"
)

type filter struct {
	Items  uint    `json:"items"`
	Rate   float64 `json:"rate"`
	Bits   uint    `json:"bits"`
	Probes uint    `json:"probes"`
	Added  int     `json:"added"`
	File   string  `json:"write_to_hex"`
	JSON   string  `json:"marshal_json"`
	Tests  string  `json:"tests_0_99"`
}

type plan struct {
	Items  uint    `json:"items"`
	Rate   float64 `json:"rate"`
	Bits   uint    `json:"bits"`
	Probes uint    `json:"probes"`
}

func item(i int) []byte {
	return []byte(fmt.Sprintf("item:%d:%s", i, "项目0123456789abcdef"[:3+i%16]))
}

func record(f *bloom.BloomFilter, items uint, rate float64, added int) filter {
	for i := 0; i < added; i++ {
		f.Add(item(i))
	}
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		panic(err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	tests := ""
	for i := 0; i < 100; i++ {
		if f.Test(item(i)) {
			tests += "1"
		} else {
			tests += "0"
		}
	}
	return filter{items, rate, f.Cap(), f.K(), added, hex.EncodeToString(file.Bytes()), string(text), tests}
}

func main() {
	var filters []filter
	for _, c := range []struct {
		items uint
		rate  float64
		added int
	}{{1, 0.5, 1}, {20, 0.01, 20}, {100, 0.05, 60}, {33, 1e-6, 40}} {
		filters = append(filters, record(bloom.NewWithEstimates(c.items, c.rate), c.items, c.rate, c.added))
	}
	for _, c := range []struct{ bits, probes uint }{{1, 1}, {64, 3}, {65, 4}, {1000, 13}} {
		filters = append(filters, record(bloom.New(c.bits, c.probes), 0, 0, 30))
	}
	var plans []plan
	for _, n := range []uint{1, 2, 7, 10, 100, 12345, 1000000} {
		for _, p := range []float64{0.9, 0.5, 0.1, 0.03, 0.01, 0.001, 1e-6, 1e-12} {
			m, k := bloom.EstimateParameters(n, p)
			plans = append(plans, plan{n, p, m, k})
		}
	}
	out := map[string]interface{}{"filters": filters, "plans": plans}
	text, _ := json.MarshalIndent(out, "", " ")
	os.WriteFile("bits-and-blooms.json", append(text, '\n'), 0o644)
}
