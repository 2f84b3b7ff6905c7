package gcs

import (
	"context"
	"errors"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTokenIsSentOnEveryCallAndAskedAgain(t *testing.T) {
	r := headOf(t, "2.60.0", "idle-1")
	tokens := []string{"first", "second\n", "third", "fourth"}
	client := dial(t, r, func(c *Config) {
		c.Token = func(context.Context) (string, error) {
			token := tokens[0]
			tokens = tokens[1:]
			return token, nil
		}
	})
	for range 2 {
		if _, err := client.State(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range r.calls {
		got = append(got, c.header.Get("authorization")...)
	}
	if strings.Join(got, ", ") != "Bearer first, Bearer second, Bearer third" {
		t.Errorf("headers %q", got)
	}
}

func TestUnreadableTokenIsAnAuthErrorThatDoesNotTellIt(t *testing.T) {
	r := headOf(t, "2.60.0", "idle-1")
	for name, token := range map[string]func(context.Context) (string, error){
		"failing":       func(context.Context) (string, error) { return "", errors.New("no such file") },
		"two lines":     func(context.Context) (string, error) { return "hidden\nvalue", nil },
		"not printable": func(context.Context) (string, error) { return "hidden\x00", nil },
	} {
		_, err := dial(t, r, func(c *Config) { c.Token = token }).State(t.Context())
		if !errors.Is(err, raydemand.ErrAuth) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want ErrAuth without the token", name, err)
		}
	}
	if len(r.calls) > 0 {
		t.Errorf("%d calls were sent", len(r.calls))
	}
}
