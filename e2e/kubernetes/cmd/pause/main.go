// Pause does nothing until it is told to end: what holds a pod's namespaces.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
