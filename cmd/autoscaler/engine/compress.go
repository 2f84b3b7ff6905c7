package engine

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"sync"
)

// compressors are reused: each holds most of a MiB.
var compressors = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return w
}}

// compress returns a value as JSON, compressed.
func compress(value any) ([]byte, error) {
	var out bytes.Buffer
	writer := compressors.Get().(*gzip.Writer)
	defer compressors.Put(writer)
	writer.Reset(&out)
	if err := json.NewEncoder(writer).Encode(value); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}

// decompress reads what compress returned.
func decompress(out []byte, into any) error {
	reader, err := gzip.NewReader(bytes.NewReader(out))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
