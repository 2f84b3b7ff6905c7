package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// MaxManifests limits a file of manifests, in bytes: what kubectl prints of about ten thousand pods.
const MaxManifests = 256 << 20

// ReadFile reads the named file, or standard input for -. It fails beyond a number of bytes, so that endless input
// ends. what describes the contents in errors.
func ReadFile(name, what string, stdin io.Reader, most int64, read func(io.Reader) error) error {
	in, from := stdin, "standard input"
	if name != "-" || stdin == nil {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("opening %s: %w", what, err)
		}
		defer file.Close()
		in, from = file, name
	}
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes, the most that are read", most)
	}
	if err == nil {
		err = read(bytes.NewReader(text))
	}
	if err != nil {
		return fmt.Errorf("reading %s from %s: %w", what, from, err)
	}
	return nil
}

// mostPools limits a file of pools, in bytes.
const mostPools = 4 << 20

// ReadPools reads the description of pools; it is empty if name is. It refuses a file without text. A file of comments
// is not empty: somebody has written it.
func ReadPools(name string) (config landing.Config, err error) {
	if name == "" {
		return config, nil
	}
	err = ReadFile(name, "pools", nil, mostPools, func(in io.Reader) error {
		text, err := io.ReadAll(in)
		if err == nil && len(bytes.TrimSpace(text)) == 0 {
			err = errors.New("the file is empty: want a list of pools, or {} for none")
		}
		if err == nil {
			config, err = decode.ReadPools(bytes.NewReader(text))
		}
		return err
	})
	return config, err
}
