package nodeagent

import (
	"regexp"
	"strings"
)

// Images maps the names of images to directories of programs. The directory comes first in the PATH of the image's
// containers. An empty directory means the programs of the machine.
//
// In a name, `*` matches any characters, and a name without a tag matches all tags. An exact name has precedence over a
// pattern, and a longer pattern over a shorter one.
type Images map[string]string

// Directory returns the directory of image's programs. ok is false if no name matches.
func (im Images) Directory(image string) (dir string, ok bool) {
	name := strings.TrimPrefix(image, "docker.io/")
	for _, exact := range []string{image, name, withoutTag(name)} {
		if dir, ok := im[exact]; ok {
			return dir, true
		}
	}
	best := ""
	for pattern := range im {
		longer := len(pattern) > len(best) || (len(pattern) == len(best) && pattern < best)
		if longer && strings.Contains(pattern, "*") && matches(pattern, name) {
			best = pattern
		}
	}
	if best == "" {
		return "", false
	}
	return im[best], true
}

// withoutTag removes `:tag` and `@digest`. A colon before the last slash belongs to the registry's port.
func withoutTag(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		return name[:colon]
	}
	return name
}

func matches(pattern, name string) bool {
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
	ok, err := regexp.MatchString("^"+expression+"$", name)
	return err == nil && ok
}
