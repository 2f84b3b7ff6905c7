package savings

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// slice is a part of a card that a worker can have instead of whole cards.
type slice struct {
	// part is the part of the card that it costs.
	part float64
	// request is what a pod requests of it, and memory is what is known about its memory.
	request, memory string
}

// sliced replays workers with a part of one GPU, where work asked Ray for no more.
func (s Situation) sliced(r Record, g *nodepool.WorkerGroup) (all []Advice) {
	card, known := wholeCards(g)
	if !known {
		return nil
	}
	cards := float64(card.UnitsPerPod)
	last := slice{part: 1}
	for _, eighths := range []int{4, 2, 1} {
		share := cards * float64(eighths) / Eighths
		to, possible := sliceOf(*card.Product, share)
		if !possible || to.part >= last.part { // the same slice is enough for more
			continue
		}
		o, fits := r.ReplaySize(eighths, to.part/cards)
		if fits < enough {
			continue
		}
		last = to
		a := Advice{Record: r, Kind: Slices, From: cards, To: share, Outcome: o}
		asked := strconv.FormatFloat(share, 'f', -1, 64)
		a.Why = fmt.Sprintf("while in use, work held at most %s of the %s of a worker in %s %% of the time, by its "+
			"num_gpus; compare the GPU memory that it uses (DCGM_FI_DEV_FB_USED) with %s", asked, gpus(card),
			percent(fits), to.memory)
		what := fmt.Sprintf("group %s: %s instead of %s: %d", g.Name, to.request, card.Resource, card.UnitsPerPod)
		if fits < 1 {
			what = fmt.Sprintf("add a copy of group %s with %s, a label that its work selects, and a higher priority",
				g.Name, to.request)
		}
		a.Change = s.edit(fmt.Sprintf("%s; multiply num_gpus of its work by %.3g", what, 1/share))
		all = append(all, a)
	}
	return all
}

// wholeCards returns the cards of a worker if it has whole ones of a known model, and Ray counts each of them as one
// GPU.
func wholeCards(g *nodepool.WorkerGroup) (*podfit.Slice, bool) {
	if len(g.Slices) != 1 || len(g.Slices[0].Differ) > 0 {
		return nil, false
	}
	card := &g.Slices[0].Slice
	return card, card.Kind == gpuinfo.Whole && card.Resource == gpuinfo.NvidiaGPU && card.Product != nil &&
		card.UnitsPerPod > 0 && g.Resources[raydemand.GPU] == raydemand.Whole(card.UnitsPerPod)
}

// sliceOf returns the smallest slice of a card with at least a part of it: a MIG instance, or if none of the model is
// known, a share by time-slicing or MPS. It returns false if that is the whole card.
func sliceOf(model string, part float64) (slice, bool) {
	product, has := gpuinfo.ProductOf(model)
	replicas := int(1 / part)
	switch {
	case !has && replicas > 1:
		request := fmt.Sprintf("%s: 1 on nodes where time-slicing or MPS shares a %s among %d (docs/howto/"+
			"share-gpus.md)", gpuinfo.NvidiaGPU, model, replicas)
		return slice{1 / float64(replicas), request, fmt.Sprintf("1/%d of the card's", replicas)}, true
	case !has:
		return slice{}, false
	}
	profile, has := product.AtLeast(part)
	s := slice{part: product.Part(profile), memory: "that of " + profile.Name}
	s.request = fmt.Sprintf("nvidia.com/mig-%s: 1 (docs/howto/share-gpus.md)", profile.Name)
	if profile.Memory > 0 {
		s.memory = fmt.Sprintf("the %d MiB of %s", profile.Memory, profile.Name)
	}
	return s, has
}

func gpus(card *podfit.Slice) string {
	if card.UnitsPerPod == 1 {
		return "GPU"
	}
	return fmt.Sprintf("%d GPUs", card.UnitsPerPod)
}
