/* SPDX-License-Identifier: BSD-3-Clause */
/* Error bounds at the ends of the range and of components, beside rational
   arithmetic: systems that the hunt found when bounds, or bars of components,
   were below the error, or an omega was above the rule. */
#include "cpu_dp/residual.h"
#include "tests/campaign/hunt.h"
#include "tests/unit/ct.h"

#include <math.h>
#include <string.h>

/* As the hunt prints them. */
static const struct {
  const char *what, *text;
} found[] = {
    {"Corrections of denormal entries of x had few bits",
     "n 3 nrhs 2 use 1 trans 0 layout 0 precision 1 structure 0 criterion 1 "
     "extra 0 deterministic 0 tolerance 0x1.c25c268497682p-44\n"
     "0x1.b6647a6260df4p+64 0x1.b6668595de775p+64 "
     "0x1.96d3d0df234c4p+61 "
     "0x1.5000000000001p+4 -0x1.53cdd5485f84cp+4 "
     "0x0p+0 "
     "0x0p+0 -0x0p+0 "
     "0x1.000bf6c77a4d6p-12 "
     "-0x0p+0 0x1p+0 "
     "0x0.0000000000002p-1022 "
     "0x1.7166ce7767a09p-1002 -0x1.c9f7ac689fab8p-1001 "
     "0x0p+0 "},
    {"The same in another system",
     "n 3 nrhs 3 use 0 trans 0 layout 0 precision 2 structure 0 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.b7cdfd9d7bdbbp-34\n"
     "-0x1.e0001a6b0899ep+1 -0x1.6000000000017p+2 "
     "-0x1.e0001a6a629b5p+0 "
     "-0x1.e000018c570d1p+3 -0x1.680012530c2c7p+4 "
     "-0x1.e000018c7b98p+2 "
     "-0x1.1fffffa1ac81ap-56 -0x0p+0 "
     "-0x1.1fffffa124cc5p-57 "
     "-0x1p+0 -0x1.6570ef6d9afdap-1 "
     "-0x1p+0 "
     "0x0p+0 -0x0.0000000000001p-1022 "
     "0x0p+0 "
     "0x1.af68b0062747ap+5 -0x1.380001c82b126p+5 "
     "0x1.6aaf372265e7dp+5 "},
    {"x of a few multiples of 2^-1074 in mixed units",
     "n 7 nrhs 3 use 1 trans 1 layout 0 precision 1 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x0p+0\n"
     "-0x1.3e7fb4a768d65p+9 -0x1.96cfdf66972b1p-21 "
     "-0x1.08ffcccbb4707p+9 -0x1.2c7fd4d7dfb13p+9 "
     "0x1.6c300e7d3a0a5p+5 -0x1.140013883c328p+7 "
     "0x1.008ffb0cceea3p+69 "
     "0x1.70c0184e59addp+11 -0x1.c0806e36888abp-21 "
     "0x1.011fd03fe0ffep+9 -0x1.b6ffcab0ff9bep+10 "
     "0x1.45684568081bdp+10 -0x1.329fc39f69cdep+11 "
     "0x1.2ffffbce204ep+64 "
     "-0x1.368fd6e8911fdp+17 0x1.9c4fb4cafd144p-16 "
     "-0x1.2338228ffe57p+15 0x1.1fa03adfae6fp+16 "
     "-0x1.42ba0f33e41d9p+16 0x1.75a0455d4062cp+16 "
     "0x1.45e00d619fbcdp+73 "
     "-0x1.73ea0838db8dbp+13 0x1.1b15b7312118bp-18 "
     "-0x1.a8e63cfa99cd2p+10 0x1.f1fbf55d3ddf8p+12 "
     "-0x1.28b04e88f3fd8p+12 0x1.456e34742fe5fp+13 "
     "-0x1.10bbc17342205p+69 "
     "0x1.77400d9f53005p+11 0x1.c3002766d7a06p-25 "
     "0x1.ab5ffac9344bdp+9 -0x1.887fceb5d556p+9 "
     "0x1.c0f7ca35e9572p+10 -0x1.0ebff44060e42p+10 "
     "-0x1.c0e03a1cbc214p+68 "
     "0x1.6a3061666ab26p+25 0x1.c3000959eee44p-11 "
     "-0x1.ab603a9b89cf5p+23 -0x1.88800b0eebd7ep+23 "
     "0x1.c0f7ae50e22cep+24 -0x1.0ebfff4680be2p+24 "
     "-0x1.c0dfcac2bcf96p+82 "
     "-0x1.950010b119964p+4 0x1.d6ab973cf1416p-23 "
     "0x1.6c2ffb9b1cd02p+6 0x1.d7dfc1bbc0f93p+7 "
     "0x1.cb77e8cfa68a2p+6 0x1.2cdfd4fe69ff7p+7 "
     "-0x1.d578574213ad3p+66 "
     "0x0p+0 0x0p+0 "
     "-0x0.0000000000001p-1022 0x0p+0 "
     "-0x0p+0 -0x0.0000000000001p-1022 "
     "0x0p+0 "
     "0x1.77e746942d8c9p-46 -0x1p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.800000000003bp+1 0x1.7573e37d3b571p-40 "
     "-0x0.0000000000003p-1022 "
     "0x1.5d63274f86ea6p+1000 -0x1.58e07c00e81dp+999 "
     "0x1.a9e855eb9e66cp+999 -0x1.c59008c379f6cp+998 "
     "0x1.2ac7e9f778235p+999 0x1.a96203a124d9cp+998 "
     "0x1.515a295724e84p+1003 "},
    {"Entries of E below eps, which the probes rounded to 0",
     "n 6 nrhs 1 use 1 trans 1 layout 0 precision 2 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.0c6f7a0b5ed8dp-20\n"
     "0x1.037615494e141p+12 -0x1.037615494e141p+17 "
     "-0x1.32be7d4f5274p+8 0x1.0374bc8f7fa8dp+11 "
     "0x1.183f86a4bb37bp+8 0x1.0374bc8f7ff0bp+11 "
     "0x0p+0 -0x0p+0 "
     "-0x1.0321881a107c2p+3 0x1.0b405353db23dp+26 "
     "0x1.03220d1e61763p+3 0x1.0b405353db754p+26 "
     "0x0p+0 0x1.d7b84c011fdf6p+23 "
     "0x1.00005279309edp-3 -0x1.ffff243a71dbfp+19 "
     "-0x1.ffff13be36a0cp-4 -0x1.ffff243a729e8p+19 "
     "-0x0p+0 0x0p+0 "
     "-0x1.32c75a3439efbp+0 0x0p+0 "
     "0x1.fffed385c1697p-1 0x0p+0 "
     "0x0p+0 -0x1.0000f1c3dbfe7p+27 "
     "-0x1.7ffe26168d3d6p+1 0x0p+0 "
     "0x0p+0 0x1.0000f1c3dbbb2p-24 "
     "0x0p+0 0x1.fffe5700f738ap+29 "
     "-0x1.7fff86052f103p+4 0x0p+0 "
     "0x0p+0 0x1.0000f0ad6972bp-21 "
     "-0x1.0d6f26437784p+26 0x1.1c028406a438p+23 "
     "-0x1.c8f5fb642b534p+26 0x1.fc091c1476bbfp+25 "
     "-0x1.c275fdfd1c51ap+26 0x1.7c94e72632adap+28 "},
    {"The same at 2^-373",
     "n 4 nrhs 1 use 1 trans 0 layout 0 precision 1 structure 0 criterion 0 "
     "extra 0 deterministic 1 tolerance 0x1.c25c268497682p-44\n"
     "-0x1.0b6f50a1cec17p+67 0x1.c35e6801c8608p+391 "
     "0x1.ba73d3f591342p+44 0x0p+0 "
     "-0x1.8b7370f65d119p-266 -0x1.0000000068d1bp+1 "
     "0x1.00002070308a6p-4 -0x1.020cdfc11f6f9p+869 "
     "0x1.8529a5ff9214cp-647 0x1.c35df6eacda08p+391 "
     "0x1.ba73386122713p+44 0x1.5b547841af45ep-866 "
     "0x1.0b6d66c88774dp+67 -0x1.d562b085d4202p-456 "
     "0x1.310871e5ca949p-698 -0x1.54764a1ecde63p-286 "
     "0x0p+0 -0x1p+0 "
     "0x0p+0 0x0p+0 "},
    {"A loose tolerance: the rounding of a large residual",
     "n 8 nrhs 2 use 1 trans 0 layout 0 precision 1 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.b7cdfd9d7bdbbp-34\n"
     "-0x1.fffffee720152p+0 0x0p+0 "
     "0x1.fffffd3bc8abfp+4 -0x1.fffffd9d5bd1p+3 "
     "0x0p+0 0x0p+0 "
     "-0x1.0000015e17072p+7 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.fffffffae3e1fp-1 0x1.f6fcep-32 "
     "-0x1.0000000008b6p+0 -0x1.fffffffbb393bp-1 "
     "0x0p+0 -0x1.ffff9f491efep-1 "
     "0x1.bffffff7bee2p-1 0x1.0000000386978p-22 "
     "0x1.0000000143261p-1 -0x1.00000003b1b5p-3 "
     "0x0p+0 0x1.000000002e776p-1 "
     "0x0p+0 0x1.fff97cda81599p-3 "
     "-0x1.bffffff7bee2p+0 -0x1.0000000386978p-21 "
     "-0x1.0000000143261p+0 0x0p+0 "
     "0x0p+0 -0x1.000000002e776p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.000000005316dp-3 -0x0p+0 "
     "-0x1.0000000211e64p+1 -0x1.00000001732dfp+0 "
     "0x0p+0 0x1.00000000c04e3p+1 "
     "0x0p+0 0x0p+0 "
     "-0x1.00000003334c8p-9 0x0p+0 "
     "0x1.00000001f52f3p-3 -0x1.00000002d0702p-4 "
     "0x0p+0 0x0p+0 "
     "-0x1.00000001198afp-1 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 -0x1.00000001ea36bp+95 "
     "0x1.0000000376f91p+99 -0x1.ffff7a31b540cp+95 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 "
     "-0x1.00000002ba50dp+3 0x1.fffffffb083bep-1 "
     "-0x1.253f0e234824ap+1 -0x1.42166f13f84p-2 "
     "0x1.3e65de1a4375cp+0 -0x1.7c33a46758b2ep+0 "
     "0x1.db3afb9035b46p+0 -0x0p+0 "
     "0x1.8a53103c050bap+0 0x1.a30ffe6d00d98p-2 "
     "-0x1.cee46545be8f4p+0 -0x0p+0 "
     "0x1.98ac4819f08cep+4 -0x1.72216730a24d8p-1 "
     "-0x1.136aa384554bcp-1 0x1.129f4aaeb4bfcp+0 "
     "0x1.d6175d847dbbap+0 -0x1.42d5a2934da1ep-1 "},
    {"Single factors far nearer singular than A, which deflation corrects",
     "n 4 nrhs 1 use 2 trans 0 layout 0 precision 1 structure 2 criterion 0 "
     "extra 0 deterministic 1 tolerance 0x0p+0 methods 1\n"
     "-0x1.fffffffb02033p+0 -0x1.ee4e3b97a7fa8p-30 0x1.216059fac0e64p-30 "
     "0x1.21605a03e2aecp-30 "
     "-0x1.bfffffe6b7a29p+3 0x1.1fffffef0dcd6p+5 0x1.0000000324c6dp+4 "
     "0x1.0000000004e1ap+4 "
     "0x1.6000000cefe2fp+3 0x0p+0 0x1.6000000d764cap+5 "
     "0x1.5ffffffcda4cbp+5 "
     "-0x1.1ffffff753dbbp+3 0x1.1fffffef0e303p+4 0x0p+0 "
     "0x0p+0 "
     "0x1.2p+3 0x1.7ffdc6ae6e10ep+3 -0x1.800242c0b40b3p+8 "
     "-0x1.8p-1 "},
    {"The same, two directions",
     "n 8 nrhs 3 use 2 trans 0 layout 0 precision 1 structure 2 criterion 0 "
     "extra 0 deterministic 1 tolerance 0x0p+0 methods 1\n"
     "-0x1.00b582e072585p+1 -0x1.17aff17c1ccc1p+1 0x1.fe113b83b2f1ap+1 "
     "-0x1.00ccc913ed1dp+0 -0x1.00ccc94d94d8ap+0 -0x1.006afe3c09a7cp+0 "
     "0x1.00d2ba3fd8771p+1 -0x1.00ccc931bdf8ap+0 "
     "0x1.fe09fde458978p+1 0x1.0022bbb6019ep+2 -0x1.004337d2651f2p+1 "
     "-0x1.4126e552be443p+2 -0x1.4126e5b2536ddp+2 0x1.00a8101a4489dp+0 "
     "0x1.00eb19b0312ccp+1 -0x1.4126e59e8ac9dp+2 "
     "0x1.3f829418f1e78p+2 0x1.3f3ef071b857dp+2 0x1.8097e0e89ca99p+2 "
     "-0x1.8073a5a12da85p+1 -0x1.8073a550b0819p+1 0x0p+0 "
     "-0x0p+0 -0x1.8073a5b0c0029p+1 "
     "-0x1.00e1e3d76e8dcp+2 -0x1.00cbeab87a178p+2 0x1.8efa1b74a48ecp-41 "
     "0x1.00158b09031fep+2 0x1.00158b48c2aebp+2 0x1.80cca29bc5809p+4 "
     "0x1.80124dde65fa7p+1 0x1.00158b376b9dp+2 "
     "-0x0p+0 0x0p+0 0x1.fe1544368db5cp-1 "
     "0x1.fff734bda0f52p+1 0x1.fff734a96f0b1p+1 -0x1.fe27d57adad39p+1 "
     "-0x1.8173fbf65f104p+1 0x1.fff73448e2173p+1 "
     "-0x1.fee20939878f4p+2 -0x1.008ec2d6faabbp+3 0x1.fe431f4afe44bp+3 "
     "-0x1.fe6a3f1ef2262p+1 -0x1.fe6a3e66d48c1p+1 0x1.ff71d3795535cp+1 "
     "0x1.00f9c7afb532p+3 -0x1.fe6a3ec6e9f2bp+1 "
     "0x0p+0 0x0p+0 0x1.ffa7a93c89e04p-1 "
     "-0x1.ff7e7da23e2b6p+1 -0x1.ff7e7d520a238p+1 0x1.401fb56ed55a8p+2 "
     "-0x1.ff26ef3bb45b2p-1 -0x1.ff7e7d40abf59p+1 "
     "-0x1.ffd7a7eb5d4d8p+1 -0x1.00641290106b2p+2 0x1.90f7fb8303bc6p-41 "
     "0x1.0000000025227p+2 0x1.fffffffffffdep+1 0x1.813c8c063b12ep+1 "
     "0x1.802aa747fb61p+1 0x1.ffffffaaf247fp+1 "
     "-0x1.ff306323b0bb4p+2 0x1.9f378a0fdc72cp+2 0x1.16026f455093cp+2 "
     "-0x1.2c5940a801bep+2 -0x1.6210e81e12e4cp+3 -0x1.06dadd959d04ep+3 "
     "-0x1.6bcb9ff3d9f0ap+3 -0x1.53aa37cdb1c2ep+3 "
     "-0x1.9ce54eb93d3a8p+3 -0x1.10b0563286f0cp+3 -0x1.828470bb0dc7cp+2 "
     "0x0p+0 -0x1.c5b62472ed174p+3 0x1.818b00606001p+3 "
     "-0x1.f59d6013ee54ep+3 0x1.57d1751b16456p+3 "
     "-0x1.c4975b606334p+3 -0x1.8p+1 -0x1.8c27b81a3ba72p+5 "
     "-0x1.bff6033ee7b52p+3 -0x1.73ee63ef2d2e5p+2 -0x1.1d10faa6f69fcp+4 "
     "0x1.85444c292e88fp+2 -0x1.2c3daa3bae5adp+3 "},
    {"A correction in single precision that was rounded more than probes",
     "n 2 nrhs 3 use 1 trans 0 layout 0 precision 1 structure 2 criterion 1 "
     "extra 0 deterministic 1 tolerance 0x1.b7cdfd9d7bdbbp-34 methods 1\n"
     "-0x1.082db1c3eb39p-114 -0x0p+0 "
     "0x1.94cb9ccc207d3p-96 0x1.80002ae2ddebep+6 "
     "0x1.4fdb421ef662cp+5 0x1.35604603705p-1 "
     "0x1.94cbc76e13c53p-94 0x1.80001a58c67aep+5 "
     "-0x1.b88ed71610442p+1 0x1.7000000000001p+5 "},
    {"Products of a row that seemed sparse had underflowed",
     "n 3 nrhs 1 use 2 trans 0 layout 0 precision 1 structure 0 criterion 0 "
     "extra 0 deterministic 0 tolerance 0x0p+0 methods 0\n"
     "-0x1.6d62a45c898a2p-990 0x1.a97330f3ee142p-995 -0x1.5ac971755d8d2p-990 "
     "0x1.a97330f3ee141p-995 0x0p+0 0x1.a4b2b07c60c3bp-995 "
     "0x1.8000000342b56p+11 0x0.002bd1cf1158p-1022 0x1.8674600f0f2b5p+11 "
     "-0x1p+5 -0x0p+0 0x0p+0 "},
    {"A column of denormals, which scaling does not bring to 1",
     "n 3 nrhs 1 use 0 trans 0 layout 0 precision 1 "
     "structure 0 criterion 0 extra 0 deterministic 0 "
     "tolerance 0x0p+0 methods 0\n"
     "-0x1.8953249590188p+8 -0x1.0000000040bebp+0 "
     "-0x1.02fade58eb25ep-34 -0x1.895323bf6fd6dp+43 "
     "-0x1.02fadeba6e104p+1 -0x1.02faddf32cde5p+1 "
     "-0x0.0000000000001p-1022 -0x0.000000000001p-1022 "
     "-0x0.000000000001p-1022 -0x0.0000000000001p-1022 "
     "-0x1.995a80293c26fp-1003 0x1.5cb59c1d57d76p-1002 "},
    {"The same in a larger system",
     "n 7 nrhs 1 use 2 trans 0 layout 0 precision 0 "
     "structure 0 criterion 0 extra 0 deterministic 0 "
     "tolerance 0x0p+0 methods 1\n"
     "0x1.59de4ae589714p-40 -0x1.841d0d35dce7dp-39 "
     "-0x1.7585e49d67e8dp-4 0x1.e7aefe6b0eab5p-4 0x1.defea9483f9b4p+48 "
     "-0x1.89009c62d5779p-1 -0x1.1bf747a9b1375p+5 0x1.14ee066565e43p-43 "
     "-0x1.585de0524200bp-41 0x0p+0 0x0p+0 0x1.d843d244f1ec7p+47 "
     "0x1.0122415f1f9b4p+1 -0x1.2e3456a95daap+3 0x1.ec74547276374p-44 "
     "-0x1.78e1d1fc9113cp-41 -0x0p+0 0x0p+0 0x1.6c6b61af12b11p+47 "
     "0x1.3fdae0de48cf1p+1 -0x1.994d8d22d602cp+2 0x1.241b9e6cda4dcp-40 "
     "-0x1.3f89fd7dac883p-39 -0x1.7005f26a45008p-4 0x1.61bcbf578a88fp-4 "
     "0x1.02bafd6cd30b7p+49 -0x1.371ec7b2f9ee8p+0 -0x1.9fc24fae8ad6bp+4 "
     "0x0p+0 -0x0p+0 -0x0.0000000000002p-1022 -0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x1.3534ec99dc4afp-45 -0x1.566ad2bd2c9a6p-45 "
     "0x1.19cdbd182ad8bp-7 0x1.8fa43ce17c5e8p-5 0x1.1d76c333856bfp+44 "
     "0x1.985d92ce455edp+45 -0x1.212a4261cab97p-2 0x1.08a7551152761p-84 "
     "-0x1.6382fe42293eep-84 0x1.9b83b0788dcb2p-47 "
     "-0x1.657528e405729p-46 0x1.890ddc9a3146cp+4 0x0p+0 "
     "-0x1.38f84ab6a88d6p-40 -0x1.544af66feecccp-1001 "
     "-0x1.fa6b74276c45p-1002 0x0p+0 -0x1.fee6638def43ap-1001 "
     "0x1.5b0392e33ad7p-1004 0x1.0c82f0b67181cp-1001 "
     "-0x1.1c873f850ea1p-1004 "},
    {"Factors of an earlier matrix, deflated, with a long first power",
     "n 12 nrhs 1 use 3 trans 1 layout 0 precision 2 "
     "structure 1 criterion 0 extra 0 deterministic 1 "
     "tolerance 0x0p+0 methods 1\n"
     "0x1.76cf5d0b097cap+2 -0x1p-1 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+2 0x1.bb67ae8584be5p-1 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 -0x1.f82243b3405dp-4 0x0p+0 0x0p+0 0x0p+0 "
     "-0x1.f82cecccd2dd5p-4 -0x1p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 -0x1p+0 0x0p+0 0x0p+0 0x1.bb67ae8584be5p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x1p+0 -0x1.bb67ae8584be5p-3 0x0p+0 "
     "-0x1p+0 0x1.bb67ae8584be5p+0 -0x1.fffffffc63a19p-1 0x0p+0 -0x1p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "-0x1.fffffffc63a19p-1 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+0 "
     "0x1.bb67ae8584be5p+0 -0x1p+0 0x0p+0 -0x1.fffc16fa8738dp-1 0x0p+0 "
     "-0x1p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 -0x1p+0 0x1.bb67a7deb6d5cp+0 -0x1p+0 0x0p+0 0x0p+0 "
     "0x0.0000000000001p-1022 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 -0x1p+0 0x1.bb67ae8584be5p+0 -0x1p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x1p-3 0x0p+0 0x0p+0 -0x1.bb67ae8584be5p-3 0x0p+0 "
     "0x1p+0 0x1.bb67ae8584be5p+0 -0x1p+0 0x0p+0 0x0p+0 -0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 -0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p-4 "
     "0x1.76cf5d0b097cap-5 0x0p+0 0x1.d0677ccd788b1p-1 "
     "-0x1.afb415b4450a6p-2 -0x1.737ef715855cp-1 -0x1.0c31160acf19fp-2 "
     "0x1.f6a123bf9f74p-3 -0x1.d44df49a91e44p-1 -0x1.ec0cd39055b3cp-2 "
     "0x1.9a8d7208cae1ap-1 -0x1.70c8d6cb32be8p-3 0x1.96279a85e910cp-2 "
     "-0x1.27a71dd733d8p-5 0x1.76cf5d0b097cap+2 -0x1p-1 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+2 "
     "0x1.bb67ae8584be5p-1 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1.f82243b3405dp-4 "
     "0x0p+0 0x0p+0 0x0p+0 -0x1.f82cecccd2dd5p-4 -0x1p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+0 0x0p+0 0x0p+0 "
     "0x1.bb67ae8584be5p+0 0x0p+0 0x0p+0 0x0p+0 0x0.0000000000001p-1022 "
     "0x0p+0 0x0p+0 0x0p+0 -0x1p+0 0x1.bb67ae8584be5p+0 "
     "-0x1.fffffffc63a19p-1 0x0p+0 -0x1p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1.fffffffc63a19p-1 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 -0x1p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 -0x1p+0 0x1.bb67ae8584be5p+0 -0x1p+0 0x0p+0 "
     "-0x1.fffc16fa8738dp-1 0x1.fffffffffffffp-1 -0x1p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+0 "
     "0x1.bb67ae8584be5p+0 -0x1p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 -0x1p+0 0x1.bb67ae8584be5p+0 "
     "-0x1p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x1p-3 0x0p+0 0x0p+0 "
     "-0x1.bb67ae8584be5p-3 0x0p+0 0x1p+0 0x1.bb67ae8584be5p+0 -0x1p+0 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 "
     "0x0p+0 -0x1p+0 0x1.76cf5d0b097cap-1 "},
    {"A column that units had cost digits, beside one for GMRES",
     "n 10 nrhs 3 use 0 trans 0 layout 0 precision 1 structure 2 criterion 0 "
     "extra 0 deterministic 1 tolerance 0x0p+0 methods 3 parts 1\n"
     "0x1.30650c222b257p+19 0x1.30650c3cc6f2bp+19 -0x1.3024e77a6fd79p+19 "
     "-0x0p+0 -0x1.30650c47b2522p+23 0x0p+0 0x0p+0 0x0p+0 "
     "-0x1.30650c19f64bcp+21 0x1.2ffd61a39c60dp+20 0x0p+0 0x0p+0 0x0p+0 "
     "-0x0p+0 -0x0p+0 0x0p+0 -0x0p+0 0x0p+0 -0x0p+0 0x1.0002bc3bf4294p+2 "
     "0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x0p+0 0x1.57f4c843f5365p+25 "
     "0x1.57ecaa6d9ddaep+19 -0x1.580dfa582e218p+21 0x1.ffffffe400025p+1 "
     "0x0p+0 -0x1.30650c3060e87p+14 -0x1.3b0d0b6d908b9p+14 "
     "0x1.2ffd61d803409p+14 -0x1.54ffffe0d11b6p+9 0x1.c43a770680ad9p+17 "
     "-0x1.9002d070ccc27p+12 0x0p+0 0x0p+0 0x1.25bd0c118df89p+16 "
     "-0x1.2ffd61b820bf8p+15 0x1.30650c0dff745p+14 0x1.3b0d0b94fd0eap+14 "
     "-0x1.2ffd61d8ba473p+14 0x1.5500002754089p+9 -0x1.c43a76e12c181p+17 "
     "0x1.580148ac09344p+25 0x1.57ecaa4dbf261p+19 -0x1.580dfa4217594p+21 "
     "-0x1.25b90c07aabc6p+16 0x1.2ffd61b32e302p+15 0x0p+0 "
     "-0x1.4ffcbf922f31bp+13 0x0p+0 -0x1.4ffcbf2297dbdp+13 "
     "-0x1.4fdcbf22a60b7p+17 0x0p+0 0x0p+0 0x0p+0 -0x1.4ffcbf2fed6d9p+15 "
     "-0x1.fffdb9ace46d8p+6 0x0p+0 -0x1.ffffff5e17213p+0 "
     "-0x1.7c03f93fb71e8p+22 -0x1.000000015dbc7p+1 0x0p+0 "
     "-0x1.58006205fffc6p+25 -0x1.57fc2621a440cp+19 0x1.a705c73940227p+24 "
     "0x0p+0 0x1.7c03f97e70abap+23 -0x1.2fff94cc5885ap+16 "
     "-0x1.2fff95556152bp+16 0x1.7faf6a112e3c4p+23 0x0p+0 "
     "0x1.da47db46e35dfp+20 0x0p+0 0x0p+0 -0x1.7bfc218e9155p+25 "
     "0x1.2fff94ac96ae2p+18 -0x1.7faf6a11442f6p+24 -0x1.0000001df43f9p+1 "
     "0x0p+0 -0x0p+0 0x0p+0 0x0p+0 0x1.58026e5579abfp+26 "
     "0x1.57fec40c47cbbp+20 0x1.57fd5c917a918p+22 0x0p+0 0x1.0002bc3f42fcfp+5 "
     "0x0p+0 0x1.a53a1cd5fcf4dp+11 0x0p+0 0x1.a53a1c762a1dfp+11 "
     "0x1.40e86647194e5p+13 0x0p+0 0x0p+0 -0x0p+0 0x1.a53a1c664a5e8p+13 "
     "0x1.fff8739c2fc54p+4 -0x1.f5676e7b53588p+23 -0x1.63d2539bbaa2cp+24 "
     "-0x1.76433e4ba8b54p+25 -0x1.ba9f5f64ee00cp+24 -0x1.5e720d957dab2p+25 "
     "0x1.ce39284b333a2p+25 0x1.076f794319fd8p+23 -0x1.d69a587a23628p+25 "
     "-0x1.2dfb0af2cd88p+22 -0x1.4f802addf07a2p+25 -0x1.f07387acf829p+22 "
     "-0x1.f0d7a7b5c482ap+24 -0x1.ffc66ad94794fp+21 0x1.116f5018fcc5ap+24 "
     "0x1.774f46b7b864p+21 -0x1.36808707e55e8p+22 0x1.f6a2e6085ff83p+24 "
     "0x1.52bad87a47124p+24 -0x1.da5d86ab507bp+22 0x1.bbd1a5fca4a4p+20 "
     "0x1.e3db75def5cecp+25 -0x1.d175b38a7a04p+21 0x1.03d98aec04438p+24 "
     "-0x1.fe1466fb11228p+23 -0x1.f090febc10bc4p+24 -0x1.30a2ee5e4521ap+25 "
     "0x1.42d4cea09ep+22 -0x1.15af22f69be48p+23 0x1.9871d7de3dc46p+25 "
     "-0x1.799791a02b43cp+24 "},
};

static void take(const char *text, hunt_system *s) {
  char copy[4096];
  const size_t length = strlen(text);
  CHECK_LE(length + 1, sizeof copy);
  memcpy(copy, text, length + 1);
  FILE *f = fmemopen(copy, length, "r");
  REQUIRE(f != NULL);
  CHECK(hunt_read(s, f));
  (void)fclose(f);
}

TEST(bounds_range, hold_where_they_once_did_not) {
  for (size_t k = 0; k < sizeof found / sizeof *found; k++) {
    hunt_system s;
    hunt_verdict v;
    ct_note("%s", found[k].what);
    take(found[k].text, &s);
    s.deterministic = 1;
    hunt_judge(&s, hunt_by_library, &v);
    CHECK_LE(0, v.status);
    CHECK_EQ_INT(v.wrong, 0);
  }
}

/* x = 1 / 3 and 5 of the smallest denormal: no digit is certain of the one, and
   the other is exact. */
TEST(bounds_range, certify_no_digit_that_a_denormal_does_not_have) {
  const double a[] = {3.0}, b[] = {0x1p-1074, 15.0 * 0x1p-1074};
  double x[2], bars[2];
  for (int criterion = 0; criterion < 3; criterion++) {
    hone_column columns[2];
    hone_options o = HONE_OPTIONS_INIT;
    o.device = HONE_DEVICE_CPU;
    o.criterion = criterion;
    o.columns = columns;
    o.error_bounds = bars;
    o.ld_error_bounds = 1;
    ct_note("criterion %d", criterion);
    CHECK_LE(HONE_NOT_CONVERGED, hone_solve(1, 2, a, 1, b, 1, x, 1, &o, NULL));
    CHECK(columns[0].status != HONE_OK);
    CHECK_EQ_INT(columns[0].digits, 0);
    CHECK_LE(0x1p-1074, bars[0]);
    CHECK_NEAR(x[1], 5.0 * 0x1p-1074, 0.0);
    CHECK_EQ_INT(columns[1].status, HONE_OK);
    CHECK_LE(15, columns[1].digits);
  }
}

static hone_wide_row row_of(int64_t n, const double *a, const double *x,
                            double b) {
  const hone_dense one = {n, 1, a, NULL, false, 0};
  const hone_matrix matrix = hone_dense_matrix(&one);
  hone_wide_row row = {.a = &matrix, .x = x, .b = b};
  matrix.op->wide_row(&row);
  return row;
}

/* In double-double the first sum is 0 too, though it is -2^-130. */
TEST(bounds_range, take_a_residual_for_zero_only_where_no_sum_was_rounded) {
  const double lost[] = {0x1p-60, 0x1p-130, -0x1p-60, 1.0};
  const double far[] = {0x1p-60, 0x1p-300, -0x1p-60, -0x1p-300};
  const double ones[] = {1.0, 1.0, 1.0, 1.0}, odd[] = {3.0, -5.0, 7.0, 2.0};
  CHECK(!row_of(4, lost, ones, 1.0).zero);
  CHECK(!row_of(4, far, ones, 0.0).zero); /* 0, but a sum was rounded */
  CHECK(row_of(4, odd, ones, 7.0).zero);
  CHECK(!row_of(4, odd, ones, 7.5).zero);
  CHECK(row_of(4, odd, odd, 87.0).zero);
  CHECK_NEAR(row_of(4, odd, odd, 87.0).den, 174.0, 0.0);
}

/* A has condition 3e11. The first powers of what deflated factors leave are
   long, and so is their inverse, without A being singular. */
static const char refused[] =
    "n 6 nrhs 1 use 0 trans 0 layout 0 precision 1 structure 2 criterion 0 "
    "extra 0 deterministic 1 tolerance 0x0p+0 methods 1\n"
    "0x1.a54000045b07dp+11 0x1.a53fffbac8e25p+11 0x1.a53fffb803d01p+11 "
    "0x1.0ccffed1c9023p+12 0x1.0ccffffb07d18p+13 0x1.0cd00006a5f86p+12 "
    "0x1.389000070c785p+8 0x1.3890000f86963p+8 0x1.38900012a48dcp+8 "
    "0x1.865ffdafb736dp+8 0x1.8660000c174e3p+9 0x1.865ffff65d4a6p+8 "
    "0x1.d900000859e87p+5 0x1.d8ffff5d8da33p+5 0x1.d8ffff66bed1ap+5 "
    "0x1.27fffcb8f13f9p+6 0x1.27fffff74b8abp+7 0x1.280000036e491p+6 "
    "0x1.5f0000014085fp+8 0x1.5effffe341ec2p+8 0x1.5effffd5b0fadp+8 "
    "0x1.047ffe56ecb89p+9 0x1.0480000407f52p+10 0x1.3890000f86963p+8 "
    "-0x1.8abffff733ecdp+6 -0x1.8abfff84c2ff7p+6 -0x1.8abfff7e7409p+6 "
    "-0x1.f48006b8c9bd2p+6 -0x1.f48000093125ap+7 -0x1.f47ffff7d3684p+6 "
    "-0x1.ed1ffff79ea33p+11 -0x1.ed1fff3481be9p+11 -0x1.ed1fff27ec72ep+11 "
    "-0x1.3a5ffe6867343p+12 -0x1.3a5ffff96e5c3p+13 -0x1.3a600005c785fp+12 "
    "0x1.389p+14 -0x1.ed36p+15 -0x1.ed5p+15 "
    "-0x1.226ffffffffffp+15 -0x1.73cfffffff655p+15 0x1.866p+14 ";

TEST(bounds_range, take_no_matrix_for_singular_by_a_long_power) {
  hunt_system s;
  hunt_verdict v;
  take(refused, &s);
  CHECK_EQ_INT(s.methods, HUNT_DEFLATION);
  hunt_judge(&s, hunt_by_library, &v);
  CHECK_EQ_INT(v.status, HONE_OK);
  CHECK_EQ_INT(v.wrong, 0);
}
