package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
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

// ReadPools reads the description of pools; it is empty if name is.
func ReadPools(name string) (config landing.Config, err error) {
	if name == "" {
		return config, nil
	}
	err = ReadFile(name, "pools", nil, MaxManifests, func(in io.Reader) (err error) {
		in, err = withText(in, "a list of pools, or {} for none")
		if err != nil {
			return err
		}
		config, err = decode.ReadPools(in)
		return err
	})
	return config, err
}

// ReadPrices reads the prices of nodes; there are none if name is empty.
func ReadPrices(name string) (book price.Book, err error) {
	if name == "" {
		return book, nil
	}
	err = ReadFile(name, "prices", nil, MaxManifests, func(in io.Reader) (err error) {
		in, err = withText(in, "prices of nodes, or {} for none")
		if err != nil {
			return err
		}
		book, err = decode.ReadPrices(in)
		return err
	})
	return book, err
}

// withText returns a reader of the same text, or an error if there is none. A file of comments is not empty: somebody
// has written it.
func withText(in io.Reader, want string) (io.Reader, error) {
	text := bufio.NewReader(in)
	if begin, err := text.Peek(text.Size()); errors.Is(err, io.EOF) && len(bytes.TrimSpace(begin)) == 0 {
		return nil, errors.New("the file is empty: want " + want)
	}
	return text, nil
}
