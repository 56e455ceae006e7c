//go:build userspace

// Lets userspace.go declare a function that another package has.
