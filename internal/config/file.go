package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// readFile is os.ReadFile with an error that says what to do.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return text, nil
}

// fileError is a file that cannot be read.
type fileError struct {
	text  string
	cause error
}

func (e *fileError) Error() string { return e.text }
func (e *fileError) Unwrap() error { return e.cause }

// unreadable says why a file cannot be read, and what to do about it.
func unreadable(path string, cause error) error {
	text := fmt.Sprintf("%s cannot be read (%v)", path, cause)
	var of *fs.PathError
	switch {
	case errors.Is(cause, fs.ErrNotExist):
		text = fmt.Sprintf("there is no file %s; correct the path, or create the file", path)
	case errors.Is(cause, fs.ErrPermission):
		text = fmt.Sprintf("%s cannot be read (permission denied); let the user of this process read it", path)
	case errors.Is(cause, syscall.EISDIR):
		text = fmt.Sprintf("%s is a directory; name a file", path)
	case errors.As(cause, &of):
		text = fmt.Sprintf("%s cannot be read (%v)", path, of.Err)
	}
	return &fileError{text, cause}
}
