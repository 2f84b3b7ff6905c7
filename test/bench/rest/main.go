// Command rest measures Heliostat's REST API under load, on a real API server, with simulated Ray heads that speak the
// true wire. First 200 requests for capacity a second for a minute: how long until they are acknowledged, and until the
// plan has taken them in. Then 10,000 requests of owners over 1,000 RayClusters in one process: memory, processor, and
// how late decisions are.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"heliostat.dev/heliostat/test/rig"
)

func main() { rig.Main(run) }

// number reads a count from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func run(ctx context.Context) error {
	rate, long := number("RATE", 200), time.Duration(number("SECONDS", 60))*time.Second
	bareLong := time.Duration(number("BARE_SECONDS", 20)) * time.Second
	under := func(ctx context.Context, f *fleet) error {
		if err := f.measureBare(ctx, rate, bareLong); err != nil {
			return err
		}
		if err := f.serve(ctx); err != nil {
			return err
		}
		return f.measure(ctx, rate, long)
	}
	many := func(ctx context.Context, f *fleet) error {
		if err := f.serve(ctx); err != nil {
			return err
		}
		return f.stand(ctx, number("REQUESTS", 10_000), time.Duration(number("REST_SECONDS", 30))*time.Second)
	}
	err := with(ctx, number("CLUSTERS", 20), under)
	if os.Getenv("MANY_CLUSTERS") == "0" {
		return err
	}
	return errors.Join(err, with(ctx, number("MANY_CLUSTERS", 1000), many))
}

// spareMemory lets the API server collect garbage only once it holds so many GiB. While it does, on a machine that it
// shares with all else, it answers nobody for tenths of a second; those times would be measured as Heliostat's.
func spareMemory() []string {
	if os.Getenv("API_SERVER_GIB") == "0" {
		return nil
	}
	return []string{"GOGC=off", fmt.Sprintf("GOMEMLIMIT=%dGiB", number("API_SERVER_GIB", 12))}
}

// with runs measure on so many RayClusters, and ends everything afterwards.
func with(ctx context.Context, clusters int, measure func(context.Context, *fleet) error) (err error) {
	r, err := rig.Start(ctx, rig.Options{ControlPlaneOnly: true, APIServerEnv: spareMemory(), Out: os.Stdout})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, r.Stop(ctx))
	}()
	f, err := newFleet(ctx, r, clusters)
	if f != nil {
		defer f.close()
	}
	if err != nil {
		return err
	}
	return measure(ctx, f)
}
