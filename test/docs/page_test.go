package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAPagesStepsAreItsShellBlocksWithWhatTheyPrint(t *testing.T) {
	page := "# Page\n\n```sh\na\nb\n```\nprints\n```\none\ntwo\n```\n\n```yaml\nnot: typed\n```\n\n```sh\n# second terminal\nc\n```\n"
	want := []step{
		{commands: "a\nb\n", shown: []string{"one", "two"}},
		{commands: "# second terminal\nc\n", second: true},
	}
	if diff := cmp.Diff(want, steps(page), cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestALineThatIsNotPrintedInItsPlaceIsMissing(t *testing.T) {
	printed := "GROUP  HAS\ngpu      3   1m12s ago, 1.2 s each\npod demo-gpu-worker-a1b2c in /tmp/x/kubeconfig\nend\n"
	for name, c := range map[string]struct {
		shown []string
		want  string
	}{
		"all lines":               {[]string{"GROUP HAS", "gpu 12 30s ago, 400 ms each", "pod demo-gpu-worker-zzzzz in /home/you/kubeconfig", "end"}, ""},
		"some lines":              {[]string{"gpu 3 1.2s ago, 10 s each", "end"}, ""},
		"another word":            {[]string{"GROUP HAS", "cpu 3 1.2s ago, 10 s each"}, "cpu 3 1.2s ago, 10 s each"},
		"another order":           {[]string{"end", "GROUP HAS"}, "GROUP HAS"},
		"a line printed but once": {[]string{"end", "end"}, "end"},
		"a word in a longer line": {[]string{"gpu"}, "gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missing(c.shown, printed); got != c.want {
				t.Errorf("missing is %q, want %q", got, c.want)
			}
		})
	}
}
