package httpapi

import (
	"fmt"
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestANewerEventTakesThePlaceOfTheOneThatWaits(t *testing.T) {
	l := newListener(nil)
	other := nodepool.ClusterKey{Name: "other"}
	l.put(frame{about{llm, "plan"}, []byte("1")}, frame{about{llm, "status"}, []byte("2")}, frame{about{other, "plan"}, []byte("3")}, frame{about{llm, "plan"}, []byte("44")})
	frames, ended := l.take()
	var texts []string
	for _, f := range frames {
		texts = append(texts, string(f.text))
	}
	if want := []string{"2", "3", "44"}; !slices.Equal(texts, want) || ended != "" || l.bytes != 0 {
		t.Errorf("%v %q, %d bytes; want %v", texts, ended, l.bytes, want)
	}
}

func TestAReaderThatIsTooSlowIsToldSoAndKeepsNothing(t *testing.T) {
	l := newListener(nil)
	large := make([]byte, maxPending/4)
	for i := range 6 {
		l.put(frame{about{nodepool.ClusterKey{Name: fmt.Sprint(i)}, "plan"}, large})
	}
	if frames, ended := l.take(); len(frames) != 0 || ended != "too slow: more than 4 MiB wait" || l.bytes != 0 {
		t.Errorf("%d frames and %d bytes wait: %q", len(frames), l.bytes, ended)
	}
	if text := string(endFrame("too slow").text); text != "event: end\ndata: {\"reason\":\"too slow\"}\n\n" {
		t.Errorf("the last event is %q", text)
	}
}

// Who reads nothing costs no more memory for each change than for the first, and no more time either.
func TestWhatWasOvertakenTakesNoRoom(t *testing.T) {
	l := newListener(nil)
	const things = 100
	for i := range 50 * things {
		l.put(frame{about{llm, fmt.Sprint(i % things)}, []byte("x")})
		if len(l.waiting) > 2*things {
			t.Fatalf("%d frames are kept after %d events about %d things", len(l.waiting), i+1, things)
		}
	}
	if frames, _ := l.take(); len(frames) != things || string(frames[0].kind) != "0" {
		t.Errorf("%d frames wait, of which the first is about %q", len(frames), frames[0].kind)
	}
}

func BenchmarkPutForAReaderWhoReadsNothing(b *testing.B) {
	l := newListener(nil)
	events := make([]frame, 3000)
	for i := range events {
		events[i] = frame{about{nodepool.ClusterKey{Name: fmt.Sprint(i)}, "plan"}, []byte("x")}
	}
	for i := 0; b.Loop(); i++ {
		l.put(events[i%len(events)])
	}
}
