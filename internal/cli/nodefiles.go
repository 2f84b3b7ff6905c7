package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

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

// ReadPrices reads the prices of nodes; the built-in lists alone apply if name is empty.
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
