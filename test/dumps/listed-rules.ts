/** The nat table of a node with one Service, as iptables-save prints it. */
export const natSaved = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SEP-WEB1 - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-WEB - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-SEP-WEB1 -s 10.244.1.1/32 -m comment --comment "shop/web:http" -j KUBE-MARK-MASQ
-A KUBE-SEP-WEB1 -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination 10.244.1.1:8080
-A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-WEB
-A KUBE-SVC-WEB ! -s 10.244.0.0/16 -d 10.96.7.7/32 -p tcp -m comment --comment "shop/web:http cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SVC-WEB -m comment --comment "shop/web:http -> 10.244.1.1:8080" -j KUBE-SEP-WEB1
COMMIT
`;

const columns = ' pkts bytes target     prot opt in     out     source               destination         \n';

/** The same as iptables -t nat -nvL prints it. */
export const natList = `Chain PREROUTING (policy ACCEPT 0 packets, 0 bytes)
${columns}   12   720 KUBE-SERVICES  0    --  *      *       0.0.0.0/0            0.0.0.0/0            /* kubernetes service portals */

Chain INPUT (policy ACCEPT 0 packets, 0 bytes)
${columns}
Chain OUTPUT (policy ACCEPT 0 packets, 0 bytes)
${columns}
Chain POSTROUTING (policy ACCEPT 1234K packets, 56M bytes)
${columns}
Chain KUBE-MARK-MASQ (2 references)
${columns}    0     0 MARK       all  --  *      *       0.0.0.0/0            0.0.0.0/0            MARK or 0x4000

Chain KUBE-SEP-WEB1 (1 references)
${columns}    0     0 KUBE-MARK-MASQ  0    --  *      *       10.244.1.1           0.0.0.0/0            /* shop/web:http */
    0     0 DNAT       6    --  *      *       0.0.0.0/0            0.0.0.0/0            /* shop/web:http */ tcp to:10.244.1.1:8080

Chain KUBE-SERVICES (1 references)
${columns}    0     0 KUBE-SVC-WEB  6    --  *      *       0.0.0.0/0            10.96.7.7            /* shop/web:http cluster IP */ tcp dpt:80

Chain KUBE-SVC-WEB (1 references)
${columns}    0     0 KUBE-MARK-MASQ  6    --  *      *      !10.244.0.0/16        10.96.7.7            /* shop/web:http cluster IP */ tcp dpt:80
    0     0 KUBE-SEP-WEB1  0    --  *      *       0.0.0.0/0            0.0.0.0/0            /* shop/web:http -> 10.244.1.1:8080 */
`;
