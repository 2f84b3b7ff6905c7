package decode

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestAnAmountOfANodeThatIsNoneIsAProblemThatNamesFieldValueAndWhatIsRight(t *testing.T) {
	for value, want := range map[string]string{
		`"0.5"`:                  `status.allocatable[nvidia.com/gpu] is 500m: want a whole number of units`,
		`"1500m"`:                `status.allocatable[nvidia.com/gpu] is 1500m: want a whole number of units`,
		`"1e30"`:                 `status.allocatable[nvidia.com/gpu] is 1e30: want a whole number of units`,
		`"99999999999999999999"`: `status.allocatable[nvidia.com/gpu] is `,
		`"-8"`:                   `status.allocatable[nvidia.com/gpu] is "-8": want a Kubernetes quantity of 0 or more`,
		`10000000000`:            `status.allocatable[nvidia.com/gpu] is 10000000000: want 0 to 1048576`,
		`"eight"`:                `status.allocatable[nvidia.com/gpu] is "eight": want a Kubernetes quantity of 0 or more`,
		`true`:                   `status.allocatable[nvidia.com/gpu] is true: want a Kubernetes quantity of 0 or more`,
	} {
		text := fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": %s}}}`, value)
		var set NodeSet
		if err := set.Read(strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		gpus := sharing.Reader{}.Read(set.Nodes()[0])
		if len(gpus.Problems) != 1 || gpus.Problems[0].Code != sharing.AmountUnreadable || !strings.HasPrefix(gpus.Problems[0].Message, want) {
			t.Errorf("%s: problems %v, want %s", value, gpus.Problems, want)
		}
		_, view, err := Read(map[string]any{"status": map[string]any{"allocatable": map[string]any{"cpu": "8", "nvidia.com/gpu": strings.Trim(value, `"`)}}})
		if _, announced := view.Allocatable["nvidia.com/gpu"]; announced || err != nil || len(view.Allocatable) != 1 {
			t.Errorf("%s: %v announces %v", value, err, view.Allocatable)
		}
	}
}
