package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestStorageThatWentBackEndsTheProcess(t *testing.T) {
	unread := errors.New("connection refused")
	tests := map[string]struct {
		answers []any // a version, or why there is none
		want    string
	}{
		"it grows":                            {[]any{"7", "9", "9", "10"}, ""},
		"it was lost":                         {[]any{"844", "12", "13"}, "from version 844 to 13"},
		"it was restored while nobody looked": {[]any{"844", unread, unread, "800", "800"}, "from version 844 to 800"},
		"one answer is late":                  {[]any{"844", "843", "845", "846"}, ""},
		"versions are no numbers":             {[]any{"b", "a", "a"}, ""},
		"it was not read yet":                 {[]any{unread, "5", "6"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answers := test.answers
			r := &storageGuard{version: func(context.Context) (string, error) {
				next := answers[0]
				answers = answers[1:]
				if err, failed := next.(error); failed {
					return "", err
				}
				return next.(string), nil
			}}
			var err error
			for err == nil && len(answers) > 0 {
				err = r.check(t.Context())
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("the look says %v, want %q", err, test.want)
			}
			if len(answers) > 0 {
				t.Errorf("%v was not asked for any more", answers)
			}
		})
	}
}
