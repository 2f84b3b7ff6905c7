package arrival

import "testing"

func TestEachStageHasASentence(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Stages {
		if text := s.Text(); text == string(s) || seen[text] {
			t.Errorf("stage %s: %q", s, text)
		}
		seen[s.Text()] = true
	}
}
