package sharing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// CardChoice has the annotations by which a pod says which cards of HAMi or Volcano it wants.
type CardChoice map[string]string

// cardChoices are these annotations: what of a card each is compared with and how, and whether a match rules the card
// out. A row without a source counts for HAMi and for Volcano (their checkType, and CheckUUID and gpuUUIDFilter).
var cardChoices = []struct {
	key, source string
	of          func(Card) string
	words       string
	matches     func(value, of string) bool
	excludes    bool
}{
	{"nvidia.com/use-gputype", "", model, "of type %s", contained, false},
	{"nvidia.com/nouse-gputype", "", model, "of type %s", contained, true},
	{"nvidia.com/vgpu-mode", hami.Name, mode, "in mode %s", strings.Contains, false},
	{"volcano.sh/vgpu-mode", volcano.Name, mode, "in mode %s", equal, false},
	{"nvidia.com/use-gpuuuid", hami.Name, uuid, "with UUID %s", listed, false},
	{"nvidia.com/nouse-gpuuuid", hami.Name, uuid, "with UUID %s", listed, true},
	{"volcano.sh/vgpu-use-gpuuuid", volcano.Name, uuid, "with UUID %s", listed, false},
	{"volcano.sh/vgpu-nouse-gpuuuid", volcano.Name, uuid, "with UUID %s", listed, true},
}

func equal(value, of string) bool { return value == of }

func model(c Card) string { return c.Model }

func mode(c Card) string { return c.Mode }

func uuid(c Card) string {
	if c.UUID == nil {
		return ""
	}
	return *c.UUID
}

// listed reports whether a list with commas names a UUID.
func listed(list, uuid string) bool { return slices.Contains(words(list), uuid) }

// contained reports whether a model contains one of the types in a list, whatever the case.
func contained(list, model string) bool {
	return slices.ContainsFunc(words(list), func(word string) bool {
		return strings.Contains(strings.ToUpper(model), strings.ToUpper(word))
	})
}

// words returns what a list with commas names.
func words(list string) (all []string) {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

// CardChoiceOf returns what a pod with these annotations wants; nil if it may have any card.
func CardChoiceOf(annotations map[string]string) CardChoice {
	var choice CardChoice
	for _, c := range cardChoices {
		if value := annotations[c.key]; len(words(value)) > 0 {
			if choice == nil {
				choice = CardChoice{}
			}
			choice[c.key] = value
		}
	}
	return choice
}

// Refuses says why the pod does not want the card: the annotation, and what the card is; empty if it may have it. What
// is unknown of a card is no reason.
func (c CardChoice) Refuses(card Card) string {
	for _, row := range cardChoices {
		value, has := c[row.key], row.of(card)
		unknown := value == "" || has == "" || row.source != "" && row.source != card.Source
		if unknown || row.matches(value, has) != row.excludes {
			continue
		}
		return fmt.Sprintf("a card "+row.words+" where the pod has the annotation %s: %s", has, row.key, value)
	}
	return ""
}

// NamesCards reports whether the pod wants single cards, which no two nodes have.
func (c CardChoice) NamesCards() bool {
	for key := range c {
		if strings.HasSuffix(key, "uuid") {
			return true
		}
	}
	return false
}

// TooFew returns what the pod does not want about the node's cards, if it wants fewer of them than it asks for; empty
// if there are enough.
func (c CardChoice) TooFew(gpus *GPUs, cards int64) (refused string) {
	if c == nil || gpus.Kind != gpuinfo.VGPU || len(gpus.PerCard) == 0 {
		return ""
	}
	wanted := int64(0)
	for _, card := range gpus.PerCard {
		why := c.Refuses(card)
		if why == "" {
			wanted++
		}
		refused = cmp.Or(refused, why)
	}
	if wanted >= max(cards, 1) {
		return ""
	}
	return "has " + refused
}
