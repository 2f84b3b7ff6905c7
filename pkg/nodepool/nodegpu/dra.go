package nodegpu

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readDRA recognizes a node whose GPUs are allocated only by resource claims.
func (r *reading) readDRA() bool {
	if len(r.node.Devices) == 0 || len(r.announced()) > 0 || r.announcesMemory() {
		return false
	}
	kind, parents := gpuinfo.Whole, map[string]bool{}
	for _, d := range r.node.Devices {
		parents[d.card()] = true
		if d.Type == "mig" {
			kind = gpuinfo.MIG
		}
		if r.gpus.Product == nil && d.Product != "" {
			model := d.Product
			r.gpus.Product = &model
			r.product, r.productKnown = gpuinfo.ProductOf(model)
		}
	}
	r.cards(int64(len(parents)))
	return r.is(kind, gpuinfo.Hardware)
}

// announcesMemory reports whether pods can request parts of cards by memory, for which no devices are announced.
func (r *reading) announcesMemory() bool {
	return max(r.gpus.Units[gpuinfo.AliyunMemory], r.gpus.Units[gpuinfo.VolcanoShared]) > 0
}

// draCards joins the devices of each card. If instances are created on demand, the slice offers the card and every
// instance that it could have: then only the allocated ones exist, and a card is whole only while none is allocated.
func (r *reading) draCards() []Card {
	var order []string
	byCard := map[string][]DRADevice{}
	for _, d := range r.node.Devices {
		if byCard[d.card()] == nil {
			order = append(order, d.card())
		}
		byCard[d.card()] = append(byCard[d.card()], d)
	}
	cards := make([]Card, 0, len(order))
	for _, id := range order {
		cards = append(cards, draCard(id, byCard[id]))
	}
	return cards
}

func draCard(id string, devices []DRADevice) Card {
	card := Card{Source: "dra"}
	if strings.HasPrefix(id, "GPU-") {
		card.UUID = &id
	}
	onDemand, known, taken, left := false, true, int64(0), int64(0)
	for _, d := range devices {
		if index, ok := draIndex(d.Name); ok && card.Index == nil {
			card.Index = &index
		}
		if d.Type != "mig" {
			onDemand = true
			card.MemoryMiB = positive(d.MemoryMiB)
		}
		switch {
		case d.Allocated == nil:
			known = false
		case *d.Allocated:
			taken += d.MemoryMiB
		case d.Type == "mig":
			left += d.MemoryMiB
		}
		if healthy := d.Taint == ""; card.Healthy == nil || !healthy {
			card.Healthy, card.Problem = &healthy, d.Taint
		}
	}
	if onDemand && card.MemoryMiB != nil {
		left = max(*card.MemoryMiB-taken, 0)
	}
	if known && (!onDemand || card.MemoryMiB != nil) {
		card.FreeMiB = &left
	}
	card.Instances = draInstances(devices, onDemand)
	if !card.usable() {
		card.empty()
	}
	return card
}

// draInstances returns the existing instances, nil if they are created on demand and their allocation is unknown.
func draInstances(devices []DRADevice, onDemand bool) []CardInstance {
	instances := []CardInstance{}
	for _, d := range devices {
		if d.Type != "mig" {
			continue
		}
		instance := CardInstance{Profile: d.Profile, Start: draStart(d.Name)}
		if d.Allocated != nil {
			free := !*d.Allocated
			instance.Free = &free
		}
		switch {
		case onDemand && d.Allocated == nil:
			return nil
		case !onDemand || *d.Allocated:
			instances = append(instances, instance)
		}
	}
	return instances
}

func positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

// draIndex reads the card's number from gpu-0 and gpu-0-mig-1g5gb-19-0.
func draIndex(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "gpu-")
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, "-")
	index, err := strconv.Atoi(digits)
	return index, err == nil
}

// draStart reads where an instance begins: the last number of its name.
func draStart(name string) *int {
	start, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil || !strings.Contains(name, "-mig-") {
		return nil
	}
	return &start
}
