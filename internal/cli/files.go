package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxManifests limits a file of manifests, in bytes: what kubectl prints of about ten thousand pods.
const MaxManifests = 256 << 20

// ReadFile reads the named file, or standard input for -, up to a number of bytes. what describes the contents in
// errors.
func ReadFile(name, what string, stdin io.Reader, most int64, read func(io.Reader) error) error {
	in, from := stdin, "standard input"
	if name != "-" || stdin == nil {
		file, err := openFile(name, most)
		if err != nil {
			return fmt.Errorf("opening %s: %w", what, err)
		}
		defer file.Close()
		in, from = file, name
	}
	bound := &bounded{in: in, left: most, most: most}
	if err := read(bound); err != nil {
		if bound.err != nil {
			err = bound.err // whatever the reader made of it
		}
		return fmt.Errorf("reading %s from %s: %w", what, from, err)
	}
	return nil
}

// openFile opens a readable file and checks its size, if it has one: a pipe has none.
func openFile(name string, most int64) (*os.File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = fmt.Errorf("%s is a directory: name the files in it", name)
	case info.Mode().IsRegular() && info.Size() > most:
		err = fmt.Errorf("%s has %d bytes, and at most %d are read", name, info.Size(), most)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// bounded is a reader that fails after a number of bytes, so that endless input ends.
type bounded struct {
	in         io.Reader
	left, most int64
	err        error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.err
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		b.err = fmt.Errorf("it has more than %d bytes, the most that are read", b.most)
		return n - 1, b.err
	}
	return n, err
}
