package reasons

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// namedOwned is how many requests of owners a sentence names before it says how many more there are, namedLetters how
// much of an owner's name.
const (
	namedOwned   = 2
	namedLetters = 40
)

// claimants knows who has what is launched for requests over REST, by kind of bundle.
type claimants map[string][]*search.RestRequest

// claimants deals out what each kind has without a launch, as requestPlans does: in the order in which requests are
// served. Those who are left with bundles are launched for.
func (w *Writer) claimants(out *search.Outcome) claimants {
	launched := map[string]int64{}
	for _, e := range out.Log {
		if e.Purpose == search.OverREST {
			launched[e.Item.Key] += e.Count
		}
	}
	if len(launched) == 0 || !w.Owned() {
		return nil
	}
	there := map[string]int64{} // without a launch
	for key, n := range launched {
		there[key] -= n
	}
	each := func(visit func(s *search.RestRequest, key string, n int64)) {
		for i := range w.RestRequests {
			for k, it := range w.RestRequests[i].Items {
				if n := w.RestRequests[i].Admitted[k]; n > 0 && launched[it.Key] > 0 {
					visit(&w.RestRequests[i], it.Key, n)
				}
			}
		}
	}
	each(func(_ *search.RestRequest, key string, n int64) { there[key] += n })
	all := claimants{}
	each(func(s *search.RestRequest, key string, n int64) {
		if there[key] -= n; there[key] < 0 {
			all[key] = append(all[key], s)
		}
	})
	return all
}

// purpose names a claim: that of requests over REST by those whose it is.
func (c claimants) purpose(of string, it *vector.Item) string {
	switch names, plain := c.names(it); {
	case of != search.OverREST || names == "":
		return of
	case plain:
		return of + " and " + names + ":"
	default:
		return names + ":"
	}
}

// names are the requests of owners whose a bundle is, if any, and whether it is of the plain request too.
func (c claimants) names(it *vector.Item) (text string, plain bool) {
	var names []string
	for _, s := range c[it.Key] {
		if s.Plain {
			plain = true
			continue
		}
		names = append(names, s.ID+" of "+shortened(s.Owner))
	}
	switch n := len(names); {
	case n == 0:
		return "", plain
	case n == 1:
		return "request " + names[0], plain
	case n == namedOwned:
		return "requests " + strings.Join(names, " and "), plain
	default:
		return fmt.Sprintf("requests %s and %d more", strings.Join(names[:namedOwned], ", "), n-namedOwned), plain
	}
}

// AskedBy names whose a bundle is, or nobody where it is of the plain request alone.
func (c claimants) AskedBy(it *vector.Item) string {
	names, plain := c.names(it)
	if plain && names != "" {
		return "the plain request and " + names
	}
	return names
}

// RefusedClaimants knows who has what is not planned for of requests over REST, by kind of bundle.
func (w *Writer) RefusedClaimants() claimants {
	all := claimants{}
	for i := range w.RestRequests {
		s := &w.RestRequests[i]
		for k, it := range s.Items {
			if s.Admitted[k] < it.Request.Count {
				all[it.Key] = append(all[it.Key], s)
			}
		}
	}
	return all
}

// shortened keeps the end of a long name: that of a ServiceAccount begins with what all have.
func shortened(name string) string {
	if letters := []rune(name); len(letters) > namedLetters {
		return "…" + string(letters[len(letters)-namedLetters+1:])
	}
	return name
}
