package main

import "fmt"

// choice is a flag of a few words. It refuses others where they are set, so that what names the flag, the file or the variable is known still.
type choice struct {
	value *string
	// want says for errors which words there are.
	want string
	// takes reports whether a word is one of them.
	takes func(string) bool
}

// String is the word that is set.
func (c *choice) String() string { return *c.value }

// Type is that of any string, in the help as in files.
func (c *choice) Type() string { return "string" }

// Set takes one of the words.
func (c *choice) Set(word string) error {
	if !c.takes(word) {
		return fmt.Errorf("want %s", c.want)
	}
	*c.value = word
	return nil
}
