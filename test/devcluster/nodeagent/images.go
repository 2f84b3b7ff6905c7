package nodeagent

import (
	"regexp"
	"strings"
)

// Images says which programs an image stands for: an image name, `*` matching any characters, to a directory that
// comes first on the PATH of the image's containers. An empty directory means the machine's own programs.
//
// A name without a tag serves every tag. An exact name goes before a pattern, a longer pattern before a shorter one.
type Images map[string]string

// Directory returns the directory of image's programs; ok is false when no name in the table matches.
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

// withoutTag cuts `:tag` and `@digest`. A colon before the last slash is a registry's port.
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
