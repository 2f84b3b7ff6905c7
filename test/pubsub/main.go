// Command pubsub finds out what the pub/sub of Ray's GCS says of what starts in a cluster, and what it loses. On a real
// head of each version of Ray, it subscribes to all channels, starts things, and prints for each kind whether there was
// a message, and how long after the call and before the state service showed it. Then it breaks things.
//
// Heliostat does not use pub/sub: docs/design/0008-readings-not-messages.md says why, with the figures of this program.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/rig"
)

// quiet is how long the channels are watched while nothing starts.
const quiet = 15 * time.Second

func main() { rig.Main(run) }

func run(ctx context.Context) error {
	versions := []string{"2.40.0", "2.52.0", "2.60.0"}
	if only := strings.Fields(os.Getenv("ONLY")); len(only) > 0 {
		versions = only
	}
	if err := simulatedCost(ctx); err != nil {
		return fmt.Errorf("measuring a simulated head: %w", err)
	}
	built, err := kit.Ensure(ctx, kit.Needs{Ray: versions}, os.Stderr)
	if err != nil {
		return fmt.Errorf("installing Ray: %w", err)
	}
	for _, version := range versions {
		if err := study(ctx, version, built.RayEnv(version)); err != nil {
			return fmt.Errorf("studying Ray %s: %w", version, err)
		}
	}
	return nil
}

// study prints the part of one version.
func study(ctx context.Context, version, venv string) error {
	h, err := startHead(ctx, version, venv)
	if err != nil {
		return err
	}
	defer h.stop()
	fmt.Printf("\nRay %s\n", version)
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"the form", h.form}, {"what starts", h.startings}, {"cost", h.cost}, {"faults", h.faults},
	} {
		if parts := os.Getenv("PARTS"); parts != "" && !strings.Contains(parts, part.name) {
			continue
		}
		fmt.Printf("\n%s\n", part.name)
		if err := part.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// form prints the names and numbers that the head uses.
func (h *head) form(ctx context.Context) error {
	conn, err := dial(h.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	wires, err := learn(ctx, conn)
	if err != nil {
		return err
	}
	for _, w := range wires {
		var channels []string
		values := w.channels.Values()
		for i := range values.Len() {
			if v := values.Get(i); w.has(v.Name()) {
				channels = append(channels, fmt.Sprintf("%s=%d", short(string(v.Name())), v.Number()))
			}
		}
		fields := w.poll.Output().Fields().ByName("pub_messages").Message().Fields()
		fmt.Printf("%s: %s; sequence_id is field %d, job_message %d\n", w.service(), strings.Join(channels, " "),
			fields.ByName("sequence_id").Number(), fields.ByName("job_message").Number())
	}
	return nil
}

// startings prints the table of what starts.
func (h *head) startings(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dial(h.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	subscribers, err := h.subscribers(ctx, conn)
	if err != nil {
		return err
	}
	d, err := h.driver(ctx, "driver")
	if err != nil {
		return err
	}
	defer d.Kill()
	background(subscribers)
	for i, s := range h.starts(d) {
		var outcomes []outcome
		for n := range trials(s) {
			o, err := h.trial(ctx, s, fmt.Sprintf("start-%d-%d", i, n), subscribers)
			if err != nil {
				return err
			}
			outcomes = append(outcomes, o)
		}
		fmt.Println(row(s.name, outcomes))
	}
	return nil
}

// subscribers subscribes to all channels of all services and polls.
func (h *head) subscribers(ctx context.Context, conn *grpc.ClientConn) ([]*subscriber, error) {
	wires, err := learn(ctx, conn)
	if err != nil {
		return nil, err
	}
	var all []*subscriber
	for _, w := range wires {
		s := newSubscriber(conn, w)
		if err := s.subscribeAll(ctx); err != nil {
			return nil, err
		}
		go s.run(ctx) //nolint:errcheck // a row without messages that had some before shows it
		all = append(all, s)
	}
	return all, nil
}

// background prints what arrives while nothing starts.
func background(subscribers []*subscriber) {
	time.Sleep(rest)
	begin := time.Now()
	time.Sleep(quiet)
	count, size := map[string]int{}, 0
	for _, s := range subscribers {
		for _, m := range s.between(begin, time.Now()) {
			count[m.String()]++
			size += m.size
		}
	}
	fmt.Printf("%s at rest: %v, %d bytes\n", quiet, count, size)
}

// row summarizes the trials of one kind.
func row(name string, outcomes []outcome) string {
	var visible, first, ahead []time.Duration
	kinds := map[string]int{}
	for _, o := range outcomes {
		visible = append(visible, o.visible)
		for _, m := range o.messages {
			kinds[m.String()]++
		}
		if len(o.messages) > 0 {
			early := slices.MinFunc(o.messages, func(a, b message) int { return a.at.Compare(b.at) }).at.Sub(o.at)
			first, ahead = append(first, early), append(ahead, o.visible-early)
		}
	}
	return fmt.Sprintf("%s: message in %d of %d trials %v; after the call: message %s, visible %s; "+
		"message before visible %s",
		name, len(first), len(outcomes), kinds, spread(first), spread(visible), spread(ahead))
}

// spread returns the median and the range.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "-"
	}
	slices.Sort(d)
	return fmt.Sprintf("%.3f s (%.3f to %.3f)", d[len(d)/2].Seconds(), d[0].Seconds(), d[len(d)-1].Seconds())
}

// trials returns the number of trials of a kind.
func trials(s start) int {
	n := 10
	if given, err := strconv.Atoi(os.Getenv("TRIALS")); err == nil && given > 0 {
		n = given
	}
	if s.trials > 0 {
		n = min(n, s.trials)
	}
	return n
}
