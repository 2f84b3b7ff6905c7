package doctor

import (
	"regexp"
	"strconv"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// oldestRay is the oldest Ray 2 with which Heliostat was tested (docs/versions.md).
const oldestRay = 40

// rayImage finds the version in the tag of an image of Ray's, as rayproject/ray:2.9.3-py311-gpu.
var (
	rayImage   = regexp.MustCompile(`(?:^|/)ray(?:-ml|-llm)?:(\d+)\.(\d+)\b`)
	rayVersion = regexp.MustCompile(`^v?(\d+)\.(\d+)\b`)
)

// rayVersionOld examines the image of the head, which decides, or rayVersion if the image has another name.
func rayVersionOld(_ *inventory, g rayGroup, report reporter) {
	image, field := g.rayContainer().Get("image"), g.Of.raySpec().Get("rayVersion")
	for _, said := range []struct {
		v       fieldpath.Value
		pattern *regexp.Regexp
	}{{image, rayImage}, {field, rayVersion}} {
		found := said.pattern.FindStringSubmatch(said.v.Text())
		if found == nil {
			continue
		}
		if before(found[1], found[2]) {
			severity := raydemand.Severity("")
			if g.Of.Mode() == nodepool.Managed {
				severity = raydemand.Error
			}
			report(occurrence{Object: g.Of, Path: said.v.Path(), Seen: said.v.Text(), Severity: severity,
				Fix: edit(g.Of, "use the images of Ray 2.40 or later in all groups, and its rayVersion")})
		}
		return
	}
}

func before(major, minor string) bool {
	first, errFirst := strconv.Atoi(major)
	second, errSecond := strconv.Atoi(minor)
	return errFirst == nil && errSecond == nil && (first < 2 || first == 2 && second < oldestRay)
}
