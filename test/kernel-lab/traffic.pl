#!/usr/bin/perl
# traffic.pl: servers and clients in many network namespaces, in one process, because a process a probe would take most
# of a kernel test's time, and because Node cannot enter a namespace. Reads commands from standard input, one a line:
#
#   listen NAMESPACE PROTOCOL ADDRESS PORT NAME    answers every client with "NAME CLIENT-ADDRESS", then echoes
#   probe ID NAMESPACE PROTOCOL ADDRESS PORT [SOURCE-ADDRESS]    "ID NAME CLIENT-ADDRESS", or "ID refused", "ID timeout" …
#   transfer ID NAMESPACE PROTOCOL ADDRESS PORT    keeps sending and reading back until "stop"; over udp it asks again
#                                                  where an answer is lost, but must be answered by one server for good
#   status ID                                      "ID open BYTES", "ID broken BYTES REASON"
#   stop ID                                        "ID stopped BYTES"
#   forget NAMESPACE PROTOCOL PORT                 closes a server
#
# The namespace "-" is the one it was started in. Protocols are tcp, udp and sctp.
use strict;
use warnings;
use Errno qw(EINPROGRESS EAGAIN ECONNREFUSED EHOSTUNREACH ENETUNREACH ECONNRESET EPIPE);
use Fcntl;
use IO::Poll qw(POLLIN POLLHUP POLLERR);
use Socket qw(:DEFAULT getaddrinfo getnameinfo AI_NUMERICHOST NI_NUMERICHOST NI_NUMERICSERV IPPROTO_IPV6 IPV6_V6ONLY);
use Time::HiRes qw(time);

my $probe_timeout = $ENV{PROBE_TIMEOUT} || 15;
my $setns = 308;    # x86_64
my $clone_newnet = 0x40000000;
my %protocols = (tcp => [SOCK_STREAM, 6], udp => [SOCK_DGRAM, 17], sctp => [SOCK_STREAM, 132]);

$| = 1;
$SIG{PIPE} = 'IGNORE';    # a client may be gone before it is answered
open(my $home, '<', '/proc/self/ns/net') or die "own namespace: $!";
my %namespaces = ('-' => $home);
# Seconds between two blocks of a transfer: thirty transfers without a pause leave User Mode Linux no time for anything else.
my $pause = 0.1;
my $poll = IO::Poll->new;
my (%readers, %deadlines, %transfers, %servers);
my $input = '';
fcntl(STDIN, F_SETFL, O_NONBLOCK);
on_read(\*STDIN, \&read_commands);

while (1) {
    $poll->poll(0.05);
    for my $handle ($poll->handles(POLLIN | POLLHUP | POLLERR)) {
        my $number = fileno $handle;
        $readers{$number}->() if defined $number && $readers{$number};
    }
    for my $id (keys %deadlines) { $deadlines{$id}{expire}->() if $deadlines{$id} && $deadlines{$id}{at} < time; }
    for my $transfer (values %transfers) { pump($transfer) if $transfer->{open}; }
}

sub on_read {
    my ($handle, $code) = @_;
    $readers{fileno $handle} = $code;
    $poll->mask($handle => POLLIN);
}

sub drop {
    my ($handle) = @_;
    delete $readers{fileno $handle};
    $poll->remove($handle);
    close $handle;
}

sub read_commands {
    my $count = sysread(STDIN, $input, 65536, length $input);
    exit 0 if defined $count && $count == 0;
    while ($input =~ s/^([^\n]*)\n//) {
        my ($verb, @words) = split / /, $1;
        my $code = { listen => \&listen_on, probe => \&probe, transfer => \&transfer, status => \&status, stop => \&stop, forget => \&forget }->{$verb}
            or die "no command $verb";
        $code->(@words);
    }
}

# A socket belongs for good to the namespace that its process was in when it was made.
sub make_socket {
    my ($namespace, $protocol, $address, $port) = @_;
    my ($type, $number) = @{ $protocols{$protocol} or die "no protocol $protocol" };
    my ($error, $info) = getaddrinfo($address, $port, { flags => AI_NUMERICHOST, socktype => SOCK_STREAM });
    die "address $address: $error" if $error;
    unless ($namespaces{$namespace}) {
        open($namespaces{$namespace}, '<', "/run/netns/$namespace") or die "namespace $namespace: $!";
    }
    syscall($setns, fileno $namespaces{$namespace}, $clone_newnet) == 0 or die "setns $namespace: $!";
    socket(my $socket, $info->{family}, $type, $number) or die "socket $protocol: $!";
    syscall($setns, fileno $home, $clone_newnet) == 0 or die "setns home: $!";
    fcntl($socket, F_SETFL, O_NONBLOCK);
    return ($socket, $info);
}

sub client_address {
    my ($packed) = @_;
    my ($error, $host) = getnameinfo($packed, NI_NUMERICHOST | NI_NUMERICSERV);
    return $error ? "unknown" : $host;
}

sub listen_on {
    my ($namespace, $protocol, $address, $port, $name) = @_;
    my ($socket, $info) = make_socket($namespace, $protocol, $address, $port);
    setsockopt($socket, SOL_SOCKET, SO_REUSEADDR, 1);
    setsockopt($socket, IPPROTO_IPV6, IPV6_V6ONLY, 1) if $info->{family} == AF_INET6;
    unless (bind($socket, $info->{addr})) { print "failed $name bind $address $port: $!\n"; return; }
    $servers{"$namespace $protocol $port"} = $socket;
    if ($protocol eq 'udp') {
        on_read($socket, sub {
            while (my $from = recv($socket, my $data, 2048, 0)) { send($socket, "$name " . client_address($from) . "\n", 0, $from); }
        });
    } else {
        listen($socket, 64) or die "listen: $!";
        on_read($socket, sub {
            while (my $peer = accept(my $client, $socket)) {
                fcntl($client, F_SETFL, O_NONBLOCK);
                syswrite($client, "$name " . client_address($peer) . "\n");
                on_read($client, sub { echo($client) });
            }
        });
    }
    print "listening $name\n";
}

sub forget {
    my ($namespace, $protocol, $port) = @_;
    my $socket = delete $servers{"$namespace $protocol $port"} or return;
    drop($socket);
}

sub echo {
    my ($client) = @_;
    my $count = sysread($client, my $data, 65536);
    return if !defined $count && $! == EAGAIN;
    return drop($client) unless $count;
    my $written = syswrite($client, $data);    # what does not fit is lost: the sender waits for each echo
}

sub reason {
    my ($error) = @_;
    return 'refused' if $error == ECONNREFUSED;
    return 'unreachable' if $error == EHOSTUNREACH || $error == ENETUNREACH;
    return 'reset' if $error == ECONNRESET || $error == EPIPE;
    local $! = $error;
    return "error:$!";
}

sub probe {
    my ($id, $namespace, $protocol, $address, $port, $source) = @_;
    my ($socket, $info) = make_socket($namespace, $protocol, $address, $port);
    my $finish = sub {
        delete $deadlines{"probe $id"};
        drop($socket);
        print "$id $_[0]\n";
    };
    if ($source) {
        my ($error, $from) = getaddrinfo($source, 0, { flags => AI_NUMERICHOST, socktype => SOCK_STREAM });
        bind($socket, $from->{addr}) or die "bind $source: $!";
    }
    $deadlines{"probe $id"} = { at => time + $probe_timeout, expire => sub { $finish->('timeout') } };
    # Registered before connect, so that finish can undo it.
    on_read($socket, sub {
        my $count = sysread($socket, my $answer, 2048);
        return if !defined $count && $! == EAGAIN;
        return $finish->(defined $count ? 'closed' : reason($!)) unless $count;
        chomp $answer;
        $finish->($answer);
    });
    if (connect($socket, $info->{addr})) { syswrite($socket, "probe\n") if $protocol eq 'udp'; }
    elsif ($! != EINPROGRESS) { return $finish->(reason($!)); }
}

# Sends a block, waits for its echo, sends the next: a connection that a change of rules breaks stops at once.
sub transfer {
    my ($id, $namespace, $protocol, $address, $port) = @_;
    my ($socket, $info) = make_socket($namespace, $protocol, $address, $port);
    my $transfer = { id => $id, socket => $socket, open => 1, bytes => 0, awaited => -1, last => time, next => 0, name => '' };
    $transfers{$id} = $transfer;
    return transfer_datagrams($transfer, $info) if $protocol eq 'udp';
    on_read($socket, sub {
        my $count = sysread($socket, my $data, 65536);
        return if !defined $count && $! == EAGAIN;
        return broken($transfer, defined $count ? 'closed' : reason($!)) unless $count;
        $transfer->{last} = time;
        if ($transfer->{awaited} < 0) {
            ($transfer->{name}) = split / /, $data;
            $transfer->{awaited} = 0;
            print "$id open $transfer->{name}\n";
        } else {
            $transfer->{bytes} += $count;
            $transfer->{awaited} -= $count;
        }
    });
    connect($socket, $info->{addr}) or $! == EINPROGRESS or broken($transfer, reason($!));
}

sub transfer_datagrams {
    my ($transfer, $info) = @_;
    $transfer->{datagrams} = 1;
    on_read($transfer->{socket}, sub {
        my $count = sysread($transfer->{socket}, my $data, 65536);
        return if !defined $count && $! == EAGAIN;
        return broken($transfer, reason($!)) unless $count;
        my ($name) = split / /, $data;
        $transfer->{last} = time;
        if ($transfer->{name} eq '') {
            $transfer->{name} = $name;
            print "$transfer->{id} open $name\n";
        }
        return broken($transfer, "moved to $name") if $name ne $transfer->{name};
        $transfer->{bytes} += $count;
        $transfer->{awaited} = 0;
        $transfer->{next} = time + $pause;
    });
    connect($transfer->{socket}, $info->{addr}) or return broken($transfer, reason($!));
    pump($transfer);
}

sub pump {
    my ($transfer) = @_;
    return broken($transfer, 'stalled') if time - $transfer->{last} > 60;
    if ($transfer->{datagrams}) {
        return if time < $transfer->{next};
        $transfer->{next} = time + 1;    # asks again after a second without an answer
        syswrite($transfer->{socket}, "x");
        return;
    }
    return if $transfer->{awaited} != 0 || time < $transfer->{next};
    $transfer->{next} = time + $pause;
    my $written = syswrite($transfer->{socket}, 'x' x 4096);
    return broken($transfer, reason($!)) unless defined $written || $! == EAGAIN;
    $transfer->{awaited} = $written if $written;
}

sub broken {
    my ($transfer, $why) = @_;
    print "$transfer->{id} $why\n" if $transfer->{awaited} < 0;
    $transfer->{open} = 0;
    $transfer->{why} = $why;
    drop($transfer->{socket});
}

sub status {
    my ($id) = @_;
    my $transfer = $transfers{$id} or return print "$id none\n";
    print $transfer->{open} ? "$id open $transfer->{bytes}\n" : "$id broken $transfer->{bytes} $transfer->{why}\n";
}

sub stop {
    my ($id) = @_;
    my $transfer = delete $transfers{$id} or return print "$id none\n";
    # Reset: a connection that is closed in good order is remembered for two minutes.
    setsockopt($transfer->{socket}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0)) if $transfer->{open};
    drop($transfer->{socket}) if $transfer->{open};
    print "$id stopped $transfer->{bytes}\n";
}
